package kernel

// Vector32 is the fastest arithmetic on float32 that the features allow.
func Vector32(Features) Vector[float32] { return portable[float32]{} }
