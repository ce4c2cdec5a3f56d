package replay

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A Guard makes handlers safe to be submitted to twice. It is safe for
// concurrent use, and cheap: make one for each policy over one store.
type Guard struct {
	engine engine
	c      Config
	drop   map[string]bool // canonical names of Config.DropHeaders
	crypt  *cryptor        // nil: responses are stored as they are
	loans  loans
	calls  sync.Pool       // of calls that no handler has seen: those of replays
	scopes []string        // of each of the forms, for nobody in particular
	recent *recentPayloads // nil unless Config.Development
}

// New returns a Guard that keeps its records in store, or all that is wrong with
// c in one error.
func New(store Store, c Config) (*Guard, error) {
	t, err := c.check(store)
	if err != nil {
		return nil, err
	}
	g := &Guard{c: c}
	for _, form := range c.Forms {
		g.scopes = append(g.scopes, tokenScope("", form))
	}
	if g.crypt, err = newCryptor(c.EncryptionKeys); err != nil {
		return nil, err
	}
	t.apply(&g.engine, store, c.Logger, c.Observe)
	g.engine.reruns = c.Reruns
	if len(c.DropHeaders) > 0 {
		g.drop = make(map[string]bool, len(c.DropHeaders))
		for _, name := range c.DropHeaders {
			g.drop[http.CanonicalHeaderKey(name)] = true
		}
	}
	if c.Development {
		g.recent = newRecentPayloads()
	}
	return g, nil
}

// Serve answers r: by next, run once for each key, or by the response that next
// gave the first time. It is what the adapters for frameworks are built on.
//
// Next gets a response writer that holds its answer back until it is stored, and
// a request whose context has the values of r's, but not its cancellation; see
// [Key], [Attempt], [Seal] and [Release] for what can be done with it. A panic
// of next passes through after the key has been released.
func (g *Guard) Serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if safe(r.Method) || g.c.Skip != nil && g.c.Skip(r) {
		next.ServeHTTP(w, r)
		return
	}
	c, _ := g.calls.Get().(*call)
	if c == nil {
		c = new(call)
	}
	c.g, c.w, c.r, c.next, c.lent = g, w, r, next, g.loans.get()
	c.body.room = c.lent.head
	defer c.close()
	id, err := g.identify(r, &c.body)
	if err != nil {
		g.refuse(c, err)
		return
	}
	c.key = id.key
	if outer := running(r.Context()); outer != nil && outer.key == c.key {
		c.body.passOn(r)
		next.ServeHTTP(w, r) // a guard around this one has claimed the key
		return
	}
	if err = c.readAhead(); err != nil {
		g.refuse(c, err)
		return
	}
	now := time.Now() // a slow client's body has come in: what follows has its own times
	if err = g.checkExpiry(r, id, now); err != nil {
		g.refuse(c, err)
		return
	}
	out, err := g.engine.do(r.Context(), c.key, c, now)
	switch {
	case err != nil && g.c.DangerouslyFailOpen && errors.Is(err, ErrStoreAway) && !c.ran:
		g.failOpen(c, err)
	case err != nil:
		g.refuse(c, err)
	case out.ran:
		c.answer()
	default:
		if err := g.replay(c, out.response); err != nil {
			g.refuse(c, err)
		}
	}
}

// safe reports whether a method is defined as changing nothing (RFC 9110,
// section 9.2.1).
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// checkExpiry refuses a token that is too old to claim its key. One that was
// claimed in time is answered for as long as its record stands, so the store is
// asked, but only if there can be a record at all.
func (g *Guard) checkExpiry(r *http.Request, id identity, now time.Time) error {
	if !id.isToken || now.Before(id.expires) {
		return nil
	}
	// The zero time is that of a clock gone wrong: nobody knows how old it is.
	if !id.expires.IsZero() && now.After(id.expires.Add(g.engine.retention+g.engine.lease)) {
		return &ExpiredError{}
	}
	rec, err := g.engine.look(r.Context(), id.key)
	if err != nil {
		return err
	}
	if rec.State == Free {
		return &ExpiredError{Unclaimed: !id.issued.IsZero() && now.Before(id.issued.Add(g.engine.retention))}
	}
	return nil
}

// refuse answers with an error. Handlers that did run have been undone or have
// lost their claim.
func (g *Guard) refuse(c *call, err error) {
	if !c.retract() {
		panic(http.ErrAbortHandler) // a part of another answer is on its way already
	}
	kind := Refused
	if errors.Is(err, ErrMismatch) {
		kind = Mismatch
	}
	g.tell(c, Event{Kind: kind, Err: err})
	c.body.show(c.r) // OnError may show the form again, with what was typed in
	g.c.OnError(c.w, c.r, err)
}

func (g *Guard) failOpen(c *call, err error) {
	g.tell(c, Event{Kind: FailedOpen, Err: err})
	c.body.passOn(c.r)
	c.next.ServeHTTP(c.w, c.r)
}

// replay answers with a stored response. It writes nothing if it returns an
// error.
func (g *Guard) replay(c *call, stored []byte) error {
	plain, err := g.crypt.decrypt(c.key, stored)
	if err != nil {
		return err
	}
	var resp response
	if !c.ran { // else it is in use
		resp.headers = c.lent.ops
	}
	if err := decodeResponse(plain, &resp); err != nil {
		return err
	}
	if err := c.compare(&resp); err != nil {
		return err
	}
	if err := resp.readableBy(c.r); err != nil {
		return err
	}
	if !c.retract() {
		panic(http.ErrAbortHandler)
	}
	g.tell(c, Event{Kind: Replayed, Status: resp.status})
	resp.send(c.w, g.c.ReplayedHeader)
	return nil
}

func (g *Guard) tell(c *call, e Event) {
	if g.c.Observe != nil {
		e.Key = c.key
		c.event(&e)
		g.c.Observe(c.r.Context(), e)
	}
}

// Status returns a handler for the browser client, which asks by GET how a
// token stands that it sends in the token's header. It answers with
//
//	{"state": "free"}
//
// or "pending" or "done", and never with the response itself. It refuses a
// token as the guard does, and answers an expired one that stands unclaimed like
// a submit with it.
func (g *Guard) Status() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "ask by GET", http.StatusMethodNotAllowed)
			return
		}
		c := &call{g: g, w: w, r: r}
		state, err := g.status(c)
		if err != nil {
			g.refuse(c, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, "{\"state\":%q}\n", state.String())
	})
}

func (g *Guard) status(c *call) (State, error) {
	if g.c.Tokens == nil {
		return Free, ErrMissingKey
	}
	value, err := single(c.r.Header[g.c.TokenHeader])
	if err != nil {
		return Free, err
	}
	if value == "" {
		return Free, ErrMissingKey
	}
	c.body.req = c.r
	id, err := g.verify(c.r, &c.body, value)
	if err != nil {
		return Free, err
	}
	c.key = id.key
	if err := g.checkExpiry(c.r, id, time.Now()); err != nil {
		return Free, err
	}
	rec, err := g.engine.look(c.r.Context(), c.key)
	return rec.State, err
}
