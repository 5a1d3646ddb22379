//go:build !race

package train

const racing = false
