// Package hostapi implements the protocol between hosts and providers, which is JSON over TLS 1.3.
// Providers issue what the needs of a host ask for, such as certificates and secrets.
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
// The provider answers with named values:
//
//	{"values":{"clientId":"outline.demo.flor.rete","clientSecret":"…","issuer":"…"}}
//
// If it refuses the request, it answers with an error. The field "kind" contains the class of the
// error (Class), which decides what the host does next:
//
//	{"kind":"denied","code":"not-granted","message":"…","retryAfter":0}
//
// Both sides announce the newest format that they understand, in the header Florete-Format. A
// provider that is too old to read a request returns the transient error newer-format.
//
// A provider gives the same answer if a host repeats a request. If a different request has the same
// idempotency key, the provider refuses it as invalid.
//
// A host fetches its documents with a conditional request. If the provider has the same documents
// as the host, it answers with status 304:
//
//	GET /config/artifact/ursula?serial=1784011430
//	If-None-Match: "sha256-…"
//	Device-Proof: LS0tLS1CRUdJTiBTU0gg…
//
// A host authenticates itself in two ways: with the SVID of its node in the TLS handshake, and with
// a signature by its SSH host key that is bound to the connection (DeviceStatement). A provider
// accepts only four requests without an SVID: /health, POST /cert/nonce, POST /config/join, and
// POST /cert/request with a Proof, which is the request for enrolment.
package hostapi
