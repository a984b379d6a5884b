// Package document defines, opens and verifies the documents to which a cluster's topology is
// compiled. Each host has a manifest, and each provider host also has a policy.
//
// A document consists of a body and an envelope. The body is exactly the output of Nix's
// builtins.toJSON. Its bytes are hashed and decoded unchanged, and never serialized again. The
// envelope names the body by its digest:
//
//	{"cluster":"demo","digest":"sha256-…","format":"1.0","host":"ursula",
//	 "kind":"manifest","rev":"8eeec93","schema":"florete.envelope/v1","serial":1784011430}
//
// Over the network a document also carries a Nix-format ed25519 signature ("name:base64") over
// "florete-envelope-v1\n" followed by the envelope's bytes.
package document
