//go:build race

package tensor

// raceEnabled says that the race detector allocates behind the tests' back.
const raceEnabled = true
