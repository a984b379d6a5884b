//go:build !race

package ingress

// bodySize is how long what a stranger sends is, in bytes.
const bodySize = 1 << 30
