// Package authority keeps the authorities of a cluster, whose keys an operator has offline: the root of its trust
// domain, made, replaced step by step and loaded to sign, and the CA of the store that provider hosts share.
package authority
