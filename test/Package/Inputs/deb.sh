# deb.sh DIRECTORY PROGRAM.C: installs the .deb files of the directory in DIRECTORY/root, and uses what is there.
set -e
PATH=$PATH:/usr/sbin:/sbin # dpkg asks for ldconfig
cd "$1"
root=$PWD/root
mkdir -p "$root"/var/lib/dpkg/info "$root"/var/lib/dpkg/updates "$root"/var/lib/dpkg/triggers
touch "$root"/var/lib/dpkg/status "$root"/var/lib/dpkg/available

for package in libfagen1 libfagen-dev fagen; do
  echo "$package: $(dpkg-deb -f "$package"_*.deb Depends)"
  [ "$package" != libfagen1 ] || dpkg-deb -I "$package"_*.deb shlibs
done
in_root() { # libc6 and the like are the system's
  dpkg --root="$root" --force-depends --force-script-chrootless "$@"
}
in_root -i ./*.deb > install.log 2>&1
echo "installed $(dpkg-query --admindir="$root"/var/lib/dpkg -W -f '${Package} ' | sed 's/ $//')"

cc -std=c99 -I "$root"/usr/include "$2" -L "$root"/usr/lib -lfagen -o program
LD_LIBRARY_PATH=$root/usr/lib ./program
"$root"/usr/bin/fagen --version
names=
for name in xxHash GCC LLVM '{fmt}' SQLite 'JSON for Modern C++' CLI11 Boost.Context; do
  for copyright in "$root"/usr/share/doc/*/copyright; do
    grep -q "$name" "$copyright"
  done
  names="$names, $name"
done
echo "licences:${names#,}"
in_root -P fagen libfagen-dev libfagen1 > remove.log 2>&1
echo "left: $(find "$root"/usr -type f 2> /dev/null | wc -l) files"
