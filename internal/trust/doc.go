// Package trust verifies who a peer is: certificate chains up to the roots of a trust domain or of one
// that it federates with, whether an SVID, a key or an identity is revoked, and what an operator signed
// to admit a device.
package trust
