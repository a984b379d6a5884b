// Package florete is the vocabulary that every part of Florete shares: SPIFFE IDs
// and the names made from them, the two documents (manifest and policy) with
// their envelope, how a document is opened and verified, which certificate chains and
// keys are accepted, and what lies where on a host's disk: the manifest in force, SVIDs
// with their keys, the state of each need.
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
//
// The package imports nothing of ours.
package florete
