//go:build !race

package record_test

const racing = false
