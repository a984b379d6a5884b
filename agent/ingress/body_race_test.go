//go:build race

package ingress

// bodySize is the size in bytes of the request body that a client from the internet sends. It is
// small, because the race detector is slow.
const bodySize = 24 << 20
