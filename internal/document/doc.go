// Package document defines the documents that a cluster's topology is compiled to, the manifest of
// a host and the policy of a provider host, and opens and verifies them.
//
// A document consists of a body and an envelope. The body's bytes are exactly the output of
// builtins.toJSON. They are hashed and decoded unchanged and never serialized again. The envelope
// names the body by its digest:
//
//	{"cluster":"demo","digest":"sha256-…","format":"1.0","host":"ursula",
//	 "kind":"manifest","rev":"8eeec93","schema":"florete.envelope/v1","serial":1784011430}
//
// Over the network a document also carries a Nix-format ed25519 signature ("name:base64") over
// "florete-envelope-v1\n" followed by the envelope's bytes.
package document
