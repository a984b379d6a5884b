// Package pubkey checks whether public keys are strong enough, and generates SSH keys.
package pubkey
