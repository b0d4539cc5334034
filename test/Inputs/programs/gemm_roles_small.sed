# gemm_roles.fair with tiles of 128 x 128, rings of three slots and results that leave at once: quick on the emulator.
s/(g in ceil_div(M, 1024), n in ceil_div(N, 256), i in 8)/(m in ceil_div(M, 128), n in ceil_div(N, 128))/
/let m = /d
s/256/128/g
s/stages 4/stages 3/
s/staged_columns = 64/staged_columns = 128/
