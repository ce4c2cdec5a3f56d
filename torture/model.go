package main

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// The model of a key: a register that is claimed, released and, once, sealed.
// A history that no order of its overlapping calls explains is a bug of a store.
//
// A lease may run out at any time, and an open transaction may be rolled back
// with its process, so that a pending key may be won by another owner. What the
// model does not forgive: a sealed key that is won again or changes its response,
// a seal that succeeds for an owner who is no longer the owner, and a claim that
// finds another response than was sealed.

type keyState struct {
	State    string // free, pending, done
	Owner    string
	Response uint64
}

type input struct {
	Op       string
	Key      string
	Owner    string
	Response uint64
}

type output struct {
	Result   string // "" if it is unknown
	Response uint64
}

func step(state keyState, in input, out output) []keyState {
	unknown := out.Result == "" || out.Result == "error"
	switch in.Op {
	case "claim":
		won := keyState{State: "pending", Owner: in.Owner}
		switch {
		case unknown && state.State == "done":
			return []keyState{state}
		case unknown:
			return []keyState{state, won}
		case out.Result == "won" && state.State != "done":
			return []keyState{won}
		case out.Result == "pending": // promises nothing: the owner may be dead already
			return []keyState{state}
		case out.Result == "done" && state.State == "done" && state.Response == out.Response:
			return []keyState{state}
		}
		return nil
	case "seal":
		sealed := keyState{State: "done", Owner: in.Owner, Response: in.Response}
		mine := state.Owner == in.Owner && state.State != "free"
		switch {
		case unknown && mine && state.State == "pending":
			return []keyState{state, sealed}
		case unknown:
			return []keyState{state}
		case out.Result == "ok" && mine && state.State == "pending":
			return []keyState{sealed}
		case out.Result == "ok" && mine && state.Response == in.Response:
			return []keyState{state}
		case out.Result == "lost" && !mine:
			return []keyState{state}
		}
		return nil
	default: // release
		mine := state.State == "pending" && state.Owner == in.Owner
		switch {
		case mine && unknown:
			return []keyState{state, {State: "free"}}
		case mine:
			return []keyState{{State: "free"}}
		}
		return []keyState{state}
	}
}

var keyModel = porcupine.NondeterministicModel{
	PartitionEvent: partitionByKey,
	Init:           func() []any { return []any{keyState{State: "free"}} },
	Step: func(state, in, out any) []any {
		var next []any
		for _, s := range step(state.(keyState), in.(input), out.(output)) {
			next = append(next, s)
		}
		return next
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string {
		i, o := in.(input), out.(output)
		return fmt.Sprintf("%s by %.4s: %s %x", i.Op, i.Owner, o.Result, max(i.Response, o.Response))
	},
	DescribeState: func(s any) string { return fmt.Sprint(s) },
}

// partitionByKey judges each key by itself.
func partitionByKey(events []porcupine.Event) [][]porcupine.Event {
	keyOf := make(map[int]string)
	byKey := make(map[string][]porcupine.Event)
	for _, e := range events {
		if e.Kind == porcupine.CallEvent {
			keyOf[e.Id] = e.Value.(input).Key
		}
		byKey[keyOf[e.Id]] = append(byKey[keyOf[e.Id]], e)
	}
	parts := make([][]porcupine.Event, 0, len(byKey))
	for _, part := range byKey {
		parts = append(parts, part)
	}
	return parts
}

// judge reports whether the histories of all processes together are possible,
// and how many calls it has judged. Calls without a return may take effect at any
// later time.
func judge(steps []Step, limit time.Duration) (porcupine.CheckResult, int) {
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].At < steps[j].At })
	type open struct {
		id int
		in input
	}
	var (
		events []porcupine.Event
		calls  = make(map[string]open)
		n      int
	)
	for _, s := range steps {
		if !s.Return {
			in := input{Op: s.Op, Key: s.Key, Owner: s.Owner, Response: s.Response}
			calls[s.ID] = open{n, in}
			events = append(events, porcupine.Event{Kind: porcupine.CallEvent, Id: n, Value: in})
			n++
			continue
		}
		if c, ok := calls[s.ID]; ok {
			delete(calls, s.ID)
			events = append(events, porcupine.Event{
				Kind: porcupine.ReturnEvent, Id: c.id, Value: output{Result: s.Result, Response: s.Response},
			})
		}
	}
	for _, c := range calls {
		events = append(events, porcupine.Event{Kind: porcupine.ReturnEvent, Id: c.id, Value: output{}})
	}
	if limit == 0 {
		limit = math.MaxInt64
	}
	return porcupine.CheckEventsTimeout(keyModel.ToModel(), events, limit), n
}
