// Package pubkey checks the strength of public keys and generates SSH keys.
package pubkey
