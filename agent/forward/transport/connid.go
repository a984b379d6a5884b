package transport

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"github.com/quic-go/quic-go"
)

// A generation identifies one of several processes that share a UDP socket. The connection IDs of
// its connections begin with it.
type generation [4]byte

// connIDLen includes four random bytes after the generation, as many as quic-go uses.
const connIDLen = len(generation{}) + 4

func newGeneration() (g generation) {
	rand.Read(g[:])
	return g
}

// GenerateConnectionID and ConnectionIDLen implement quic.ConnectionIDGenerator.
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

// generationOf returns the generation in the destination of a packet (RFC 9000, section 17). For
// the first packets of a caller, which choose a connection ID of their own, it returns four random
// bytes.
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

// tokenKey returns a key that is the same in all processes with the same reset key. A caller that
// has proved its address to one process need not prove it to the next.
func tokenKey(reset *quic.StatelessResetKey) *quic.TokenGeneratorKey {
	if reset == nil {
		return nil
	}
	b, err := hkdf.Key(sha256.New, reset[:], nil, "florete retry token", len(quic.TokenGeneratorKey{}))
	if err != nil {
		return nil // callers that were about to prove their address start again
	}
	return (*quic.TokenGeneratorKey)(b)
}
