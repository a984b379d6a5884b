// Package trust verifies the identity of peers. It verifies certificate chains up to the roots of a
// trust domain or of a federated trust domain, checks whether SVIDs, keys and identities are
// revoked, and verifies operators' signed admissions of devices.
package trust
