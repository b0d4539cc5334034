# fagen: writes a spec for each GPU and many head dims, checks it with all its variants, and that it is laid out.
import subprocess

specs = []
for gpu in ("sm_80", "sm_86", "sm_89", "sm_90"):
    for dim in ("16", "64", "80", "96", "128", "192", "192:128", "240", "256"):
        name = f"{gpu}_{dim.replace(':', 'x')}"
        subprocess.run(["fagen", "init", f"--gpu={gpu}", f"--head-dim={dim}", f"--name={name}", "-o", f"{name}.fa"], check=True)
        specs.append(f"{name}.fa")
subprocess.run(["fagen", "fmt", "--check", *specs], check=True)
subprocess.run(["fagen", "check", *specs], check=True, stdout=subprocess.DEVNULL)
print(f"{len(specs)} specs pass")
