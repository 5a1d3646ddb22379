//go:build amd64 && !noasm

package kernel

// newEngines is the one place where features choose kernels.
func newEngines(f Features) engines {
	s := engines{f32: portable32(), f64: portable64()}
	switch {
	case f.AVX512:
		s.f32 = avx512()
	case f.AVX2:
		s.f32 = avx2()
	}
	if f.AVX512 && f.BF16 {
		s.bf16, s.pairs = avx512bf16(), f.BF16Fast
	}
	return s
}

func avx512() engine {
	return engine{
		rows: 14, width: 32, unit: 4, per: 1, depth: 1024, lanes: 16,
		tile: tileF32AVX512, half: tileF32AVX512Half,
		panels:    [forms]panelsFunc{formKeep: panelsF32AVX512, formExpand: panelsBF16AVX512},
		transpose: [forms]transposeFunc{formKeep: transposeF32AVX512, formExpand: transposeBF16AVX512},
	}
}

func avx512bf16() engine {
	return engine{
		rows: 14, width: 32, unit: 4, per: 2, depth: 1024, lanes: 16,
		tile: tileBF16AVX512, half: tileBF16AVX512Half,
		panels:    [forms]panelsFunc{formPairs: panelsPairsAVX512},
		transpose: [forms]transposeFunc{formKeep: transposeF32AVX512, formPairs: transposePairsAVX512},
	}
}

func avx2() engine {
	return engine{
		rows: 6, width: 16, unit: 4, per: 1, depth: 1024, lanes: 8,
		tile: tileF32AVX2, half: tileF32AVX2Half,
		panels:    [forms]panelsFunc{formKeep: panelsF32AVX2, formExpand: panelsBF16AVX2},
		transpose: [forms]transposeFunc{formKeep: transposeF32AVX2, formExpand: transposeBF16AVX2},
	}
}
