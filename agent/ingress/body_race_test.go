//go:build race

package ingress

// bodySize is how long what a stranger sends is, in bytes: the race detector is slow to look at more.
const bodySize = 24 << 20
