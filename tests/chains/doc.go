// Package chains presents unusual certificate chains, in real handshakes, to every part that
// verifies chains.
package chains
