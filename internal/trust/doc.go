// Package trust decides which peers and devices a program trusts. It verifies certificate chains up
// to the roots of the cluster's trust domain or of a federated trust domain. It checks whether
// identities, SVIDs and keys are revoked. It also verifies operators' signed admissions of devices.
package trust
