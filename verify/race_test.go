//go:build race

package verify_test

// racing tells that the race detector runs, under which everything takes some twenty times as long: tests do less of the same.
const racing = true
