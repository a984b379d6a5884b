// Package hostapi is the protocol between hosts and providers: JSON over TLS 1.3.
//
// A host requests each need on its own; requests that begin together go over one
// connection, one after the other:
//
//	POST /oidc/request
//	Idempotency-Key: 9f86d0…
//	{"need":"oidc-outline","serial":1784011430,"generation":1,
//	 "body":{"redirectURIs":["http://…"],"service":"spiffe://demo.flor/service/outline"},
//	 "device":"-----BEGIN SSH SIGNATURE-----…"}
//
// and gets an answer of named values,
//
//	{"values":{"clientId":"outline.demo.flor.rete","clientSecret":"…","issuer":"…"}}
//
// or an error, whose kind decides what the host does next:
//
//	{"kind":"denied","code":"not-granted","message":"…","retryAfter":0}
//
// Both announce the newest format that they understand in the header Florete-Format. A
// provider that cannot read what a host of a newer release requests returns newer-format,
// which is transient.
//
// The same request twice has the same answer. A request with the key of another
// request is invalid.
//
// Documents are read conditionally: a node that has those that the provider has, by their
// Tag, receives 304 and nothing else.
//
//	GET /config/artifact/ursula?serial=1784011430
//	If-None-Match: "sha256-…"
//	Device-Proof: LS0tLS1CRUdJTiBTU0gg…
//
// A host is authenticated by its node SVID in the TLS handshake and by its SSH host key,
// which signs the connection (DeviceStatement). Only
// /health, POST /cert/nonce and the enrolment form of POST /cert/request come without an
// SVID; the last carries a Proof.
package hostapi
