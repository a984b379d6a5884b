package transport

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"github.com/quic-go/quic-go"
)

// A generation is one process of those that share a UDP socket: connection IDs of its
// connections begin with it.
type generation [4]byte

// connIDLen is what quic-go has at random behind the generation too.
const connIDLen = len(generation{}) + 4

func newGeneration() (g generation) {
	rand.Read(g[:])
	return g
}

// GenerateConnectionID and ConnectionIDLen are those of quic.ConnectionIDGenerator.
func (g generation) GenerateConnectionID() (quic.ConnectionID, error) {
	var id [connIDLen]byte
	rand.Read(id[copy(id[:], g[:]):])
	return quic.ConnectionIDFromBytes(id[:]), nil
}

func (g generation) ConnectionIDLen() int { return connIDLen }

func (g generation) String() string { return hex.EncodeToString(g[:]) }

func parseGeneration(s string) (g generation, ok bool) {
	b, err := hex.DecodeString(s)
	return g, err == nil && copy(g[:], b) == len(g) && len(b) == len(g)
}

// generationOf is that of a packet's destination (RFC 9000 section 17), or four bytes of
// chance: a caller's first packets have a connection ID of its own.
func generationOf(packet []byte) (g generation) {
	at := 1
	if len(packet) > 5 && packet[0]&0x80 != 0 {
		if int(packet[5]) != connIDLen {
			return g
		}
		at = 6
	}
	if len(packet) >= at+connIDLen {
		copy(g[:], packet[at:])
	}
	return g
}

// tokenKey is the same in all processes that have a reset key: a caller that one of them
// has had prove its address has proved it to the next.
func tokenKey(reset *quic.StatelessResetKey) *quic.TokenGeneratorKey {
	if reset == nil {
		return nil
	}
	b, err := hkdf.Key(sha256.New, reset[:], nil, "florete retry token", len(quic.TokenGeneratorKey{}))
	if err != nil {
		return nil // callers that were about to prove their address begin anew
	}
	return (*quic.TokenGeneratorKey)(b)
}
