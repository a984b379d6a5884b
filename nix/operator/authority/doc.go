// Package authority manages the two certificate authorities whose keys an operator keeps offline.
// One is the root of the trust domain: the package creates the root, signs with it, and replaces it
// step by step. The other is the CA of the state store that provider hosts share. The key of the
// root can be on a PKCS #11 token.
package authority
