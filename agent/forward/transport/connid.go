package transport

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"github.com/quic-go/quic-go"
)

// generation identifies one of the processes that share a UDP socket during an upgrade. The
// connection IDs of its connections begin with it, so that packets can be passed to the right
// process.
type generation [4]byte

// connIDLen is the length of connection IDs in bytes: a generation, and four random bytes, as many
// as quic-go uses.
const connIDLen = len(generation{}) + 4

func newGeneration() (g generation) {
	rand.Read(g[:])
	return g
}

// GenerateConnectionID returns a random connection ID. It begins with four bytes that identify this
// process, so that packets find the right process during an upgrade. It implements
// quic.ConnectionIDGenerator.
func (g generation) GenerateConnectionID() (quic.ConnectionID, error) {
	var id [connIDLen]byte
	rand.Read(id[copy(id[:], g[:]):])
	return quic.ConnectionIDFromBytes(id[:]), nil
}

// ConnectionIDLen implements quic.ConnectionIDGenerator.
func (g generation) ConnectionIDLen() int { return connIDLen }

func (g generation) String() string { return hex.EncodeToString(g[:]) }

func parseGeneration(s string) (g generation, ok bool) {
	b, err := hex.DecodeString(s)
	return g, err == nil && copy(g[:], b) == len(g) && len(b) == len(g)
}

// generationOf returns the generation in the destination connection ID of a packet (RFC 9000,
// section 17). It returns four random bytes for the first packets of a caller, because the caller
// has chosen their connection ID itself.
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

// tokenKey derives the key of address tokens from the reset key. The key is the same in the next
// process, so that a caller who has proved its address to this process need not prove it again.
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
