//go:build race

package ingress

// bodySize is the size of a stranger's request body in bytes: the race detector is too slow for
// more.
const bodySize = 24 << 20
