module carve

go 1.26
