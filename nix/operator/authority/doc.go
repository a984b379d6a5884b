// Package authority manages the certificate authorities whose keys an operator keeps offline: the
// root of the trust domain, which it creates, replaces step by step and loads for signing, and the
// CA of the state store that provider hosts share.
package authority
