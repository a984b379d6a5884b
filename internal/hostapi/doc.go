// Package hostapi is the protocol between hosts and providers: JSON over TLS 1.3.
//
// A host requests each need separately. Requests that begin together share one connection, one
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
// or an error, whose kind (Class) decides what the host does next:
//
//	{"kind":"denied","code":"not-granted","message":"…","retryAfter":0}
//
// Both sides announce the newest format that they understand in the header Florete-Format. A
// provider that cannot read a request of a newer release returns newer-format, which is transient.
//
// A repeated request has the same answer. A request with the idempotency key of another request is
// invalid.
//
// Documents are fetched conditionally. If the provider's documents have the node's Tag, it answers
// with status 304.
//
//	GET /config/artifact/ursula?serial=1784011430
//	If-None-Match: "sha256-…"
//	Device-Proof: LS0tLS1CRUdJTiBTU0gg…
//
// A host is authenticated by its node SVID in the TLS handshake and by a signature of the
// connection with its SSH host key (DeviceStatement). Only /health, POST /cert/nonce, POST
// /config/join and the enrolment form of POST /cert/request are accepted without an SVID. The last
// carries a Proof.
package hostapi
