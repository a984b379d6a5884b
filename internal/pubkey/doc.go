// Package pubkey refuses public keys that are weak, or that others can sign for, and makes those of SSH.
package pubkey
