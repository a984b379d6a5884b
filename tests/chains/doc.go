// Package chains tests how the programs of a cluster verify certificate chains. It presents unusual
// chains in real handshakes to each part that verifies chains.
package chains
