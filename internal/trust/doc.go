// Package trust verifies the identity of peers: certificate chains up to the roots of a trust
// domain or of a federated one, the revocation of SVIDs, keys and identities, and operators' signed
// admissions of devices.
package trust
