// Package hostapi is the protocol between hosts and providers: JSON over TLS 1.3.
//
// A host sends one request for each need. Requests that begin together use the same connection, one
// after the other:
//
//	POST /oidc/request
//	Idempotency-Key: 9f86d0…
//	{"need":"oidc-outline","serial":1784011430,"generation":1,
//	 "body":{"redirectURIs":["http://…"],"service":"spiffe://demo.flor/service/outline"},
//	 "device":"-----BEGIN SSH SIGNATURE-----…"}
//
// The answer contains named values,
//
//	{"values":{"clientId":"outline.demo.flor.rete","clientSecret":"…","issuer":"…"}}
//
// or an error. The field kind of an error (Class) decides what the host does next:
//
//	{"kind":"denied","code":"not-granted","message":"…","retryAfter":0}
//
// Both sides announce the newest format that they understand in the header Florete-Format. A
// provider that cannot read a request of a newer release returns the transient error newer-format.
//
// A provider answers a repeated request with the same answer. It refuses a different request with
// the same idempotency key as invalid.
//
// A host fetches its documents with a conditional request. If the provider has the same documents
// as the host, it answers with status 304.
//
//	GET /config/artifact/ursula?serial=1784011430
//	If-None-Match: "sha256-…"
//	Device-Proof: LS0tLS1CRUdJTiBTU0gg…
//
// A host authenticates in two ways: with its node SVID in the TLS handshake, and with a signature
// by its SSH host key that is bound to the connection (DeviceStatement). A provider accepts only
// four requests without an SVID: /health, POST /cert/nonce, POST /config/join, and POST
// /cert/request for enrolment, which contains a Proof.
package hostapi
