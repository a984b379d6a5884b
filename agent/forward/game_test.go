package forward_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

// A datagram of the game has the number of the player, a sequence number, and content that follows
// from both.
func encodeMove(player, sequence uint32) []byte {
	b := make([]byte, 40+(player*97+sequence*13)%1000)
	binary.BigEndian.PutUint32(b, player)
	binary.BigEndian.PutUint32(b[4:], sequence)
	for i := 8; i < len(b); i++ {
		b[i] = byte(player) ^ byte(sequence) ^ byte(i)
	}
	return b
}

// decodeMove returns an error if a datagram was changed.
func decodeMove(b []byte) (player, sequence uint32, err error) {
	if len(b) >= 8 {
		player, sequence = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		if string(b) == string(encodeMove(player, sequence)) {
			return player, sequence, nil
		}
	}
	return 0, 0, fmt.Errorf("%d bytes are not as they were sent", len(b))
}

// update is the flag in sequence numbers of datagrams that the server sends by itself.
const update = 1 << 31

// game is the server of a game. It answers each move of a player, and sends updates to all players,
// each to the address from which the player's last new move came. As servers of games do, it
// recognizes a player whose address changes by the player's number.
type game struct {
	conn    net.PacketConn
	mu      sync.Mutex
	players map[uint32]*playing
}

type playing struct {
	at        net.Addr
	last      uint32          // highest sequence number
	addresses map[string]bool // from which its moves came
	moves     map[uint32]bool
	updates   uint32
}

func startGame(t *testing.T) *game {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &game{conn: conn, players: map[uint32]*playing{}}
	var running sync.WaitGroup
	tick, ended := time.NewTicker(50*time.Millisecond), make(chan struct{})
	t.Cleanup(func() {
		tick.Stop()
		close(ended)
		conn.Close()
		running.Wait()
	})
	running.Go(func() {
		for b := make([]byte, 1<<16); ; {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			player, sequence, err := decodeMove(b[:n])
			if err != nil {
				t.Error("the server: ", err)
				continue
			}
			g.mu.Lock()
			p := g.players[player]
			if p == nil {
				p = &playing{addresses: map[string]bool{}, moves: map[uint32]bool{}}
				g.players[player] = p
			}
			p.moves[sequence], p.addresses[from.String()] = true, true
			if p.at == nil || sequence > p.last {
				p.at, p.last = from, sequence
			}
			g.mu.Unlock()
			conn.WriteTo(b[:n], from)
		}
	})
	running.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			g.mu.Lock()
			for number, p := range g.players {
				p.updates++
				conn.WriteTo(encodeMove(number, update|p.updates), p.at)
			}
			g.mu.Unlock()
		}
	})
	return g
}

// addresses returns the number of addresses from which a player's moves came.
func (g *game) addresses(player uint32) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.players[player].addresses)
}

// player is a client of the game.
type player struct {
	number, moved uint32
	conn          net.Conn
}

// connect opens the player's socket at an address of its host.
func (p *player) connect(from, to string) error {
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("udp", to)
	p.conn = conn
	return err
}

// receive returns the sequence number of the next datagram. All datagrams must be the player's.
func (p *player) receive(deadline time.Time) (uint32, error) {
	b := make([]byte, 1<<16)
	p.conn.SetReadDeadline(deadline)
	n, err := p.conn.Read(b)
	if err != nil {
		return 0, err
	}
	of, sequence, err := decodeMove(b[:n])
	if err == nil && of != p.number {
		err = fmt.Errorf("player %d got a datagram of player %d", p.number, of)
	}
	return sequence, err
}

// move sends moves until the server has answered n of them, each again while its answer is missing,
// because datagrams can be lost. At most 16 of them wait for an answer. The pauses grow, or a slow
// machine would have more moves to answer than it can.
func (p *player) move(n uint32) error {
	type attempt struct {
		next  time.Time
		pause time.Duration
	}
	waiting := map[uint32]attempt{}
	last := p.moved + n
	for limit := time.Now().Add(kit.Patience); p.moved < last || len(waiting) > 0; {
		if time.Now().After(limit) {
			return fmt.Errorf("player %d: %d moves have no answer", p.number, len(waiting))
		}
		for p.moved < last && len(waiting) < 16 {
			p.moved++
			waiting[p.moved] = attempt{pause: 200 * time.Millisecond}
		}
		for sequence, a := range waiting {
			if now := time.Now(); now.After(a.next) {
				waiting[sequence] = attempt{now.Add(a.pause), 2 * a.pause}
				if _, err := p.conn.Write(encodeMove(p.number, sequence)); err != nil {
					return err
				}
			}
		}
		sequence, err := p.receive(time.Now().Add(200 * time.Millisecond))
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			continue
		} else if err != nil {
			return err
		}
		delete(waiting, sequence)
	}
	return nil
}

// watch receives updates, and nothing else than datagrams of the player, without sending anything.
func (p *player) watch(updates int) error {
	for limit := time.Now().Add(kit.Patience); updates > 0; {
		sequence, err := p.receive(limit)
		if err != nil {
			return err
		}
		if sequence&update != 0 {
			updates--
		}
	}
	return nil
}

// TestGame checks that strangers play through a public port over UDP: many datagrams each way
// between several clients and the server, each client with an address of its own at the server. A
// client that is silent keeps its session, in which it gets datagrams of the server. A client whose
// address changes goes on from the new one.
func TestGame(t *testing.T) {
	t.Parallel()
	g := startGame(t)
	c, e := entered(t, g.conn.LocalAddr().String(), document.UDP)
	c.start(t)
	const moves = 300
	var players sync.WaitGroup
	for number := range uint32(6) {
		players.Go(func() {
			p := &player{number: number}
			if err := p.connect(fmt.Sprintf("127.0.0.%d", 10+number), e.Listen); err != nil {
				t.Error(err)
				return
			}
			defer func() { p.conn.Close() }()
			play := func(what string, err error) {
				if err != nil {
					t.Errorf("player %d, %s: %v", number, what, err)
				}
			}
			play("at the beginning", p.move(moves))
			play("while it is silent", p.watch(50))
			play("after it was silent", p.move(moves))
			if n := g.addresses(number); n != 1 {
				t.Errorf("player %d had %d sessions, want 1", number, n)
			}
			if number%2 == 0 {
				former := *p
				defer former.conn.Close()
				play("at another address", p.connect(fmt.Sprintf("127.0.0.%d", 110+number), e.Listen))
				play("at another address", p.move(moves))
				play("silent at another address", p.watch(20))
				if n := g.addresses(number); n != 2 {
					t.Errorf("player %d had %d sessions, want 2", number, n)
				}
			}
		})
	}
	players.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := map[string]uint32{}
	for number, p := range g.players {
		if uint32(len(p.moves)) != p.last {
			t.Errorf("the server has %d moves of player %d, want %d", len(p.moves), number, p.last)
		}
		for at := range p.addresses {
			if other, taken := seen[at]; taken {
				t.Errorf("players %d and %d have the address %s", number, other, at)
			}
			seen[at] = number
		}
	}
	if len(seen) != 9 {
		t.Errorf("the server saw %d addresses, want 9", len(seen))
	}
}
