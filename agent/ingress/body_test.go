//go:build !race

package ingress

// bodySize is the size of a stranger's request body in bytes.
const bodySize = 1 << 30
