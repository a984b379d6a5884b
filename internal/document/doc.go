// Package document defines the documents that the compiler writes for each host of a cluster, and
// opens and verifies them. Each host has a manifest, which lists what the host needs and reaches.
// Each provider host also has a policy, which lists the requests that it may answer.
//
// A document consists of a body and an envelope. The body is the exact output of Nix's
// builtins.toJSON. Programs hash and decode these bytes as they are, and never serialize a body
// again. The envelope identifies the body by its digest:
//
//	{"cluster":"demo","digest":"sha256-…","format":"1.0","host":"ursula",
//	 "kind":"manifest","rev":"8eeec93","schema":"florete.envelope/v1","serial":1784011430}
//
// A document that is sent over the network also carries an ed25519 signature in Nix format
// ("name:base64"). The signed text is "florete-envelope-v1\n", followed by the bytes of the
// envelope.
package document
