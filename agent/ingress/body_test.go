//go:build !race

package ingress

// bodySize is the size in bytes of the request body that a client from the internet sends.
const bodySize = 1 << 30
