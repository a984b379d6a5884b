// Package document has what a cluster's topology compiles to: the manifest of a host and the policy
// of a provider host, with their needs, and how a document is opened and verified.
//
// A document is a body and an envelope. The body's bytes are exactly what
// builtins.toJSON wrote; they are hashed and decoded as they are and never
// serialized again. The envelope names the body by digest:
//
//	{"cluster":"demo","digest":"sha256-…","format":"1.0","host":"ursula",
//	 "kind":"manifest","rev":"8eeec93","schema":"florete.envelope/v1","serial":1784011430}
//
// Over the network a document also carries a Nix-format ed25519 signature
// ("name:base64") over "florete-envelope-v1\n" followed by the envelope's bytes.
package document
