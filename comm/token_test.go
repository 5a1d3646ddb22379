package comm_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carve/comm"
)

// TestTokenOrder holds that the token goes to those who wait in the order of asking, one at a time.
func TestTokenOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := comm.NewToken()
		var got []int
		for i := range 5 {
			go func() {
				token.Acquire()
				got = append(got, i)
				<-time.After(time.Second)
				token.Release()
			}()
			synctest.Wait()
		}
		if !token.Wanted() || len(got) != 0 {
			t.Errorf("before the release %v have the token", got)
		}
		begin := time.Now()
		token.Yield()
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(got, want) {
			t.Errorf("the order is %v, want %v", got, want)
		}
		if d := time.Since(begin); d != 5*time.Second {
			t.Errorf("five holders of a second each took %v", d)
		}
		if token.Wanted() {
			t.Error("somebody still waits")
		}
		token.Yield() // to nobody
		token.Release()
	})
}

func TestTokenMisuse(t *testing.T) {
	token := comm.NewToken()
	token.Release()
	defer func() {
		if recover() == nil {
			t.Error("releasing a token that nobody holds does not panic")
		}
	}()
	token.Release()
}

// TestTokenOpen holds that nobody waits for the token of a rank that has left.
func TestTokenOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := comm.NewToken()
		var passed atomic.Int32
		for range 3 {
			go func() {
				token.Acquire()
				passed.Add(1)
			}()
			synctest.Wait()
		}
		token.Open()
		synctest.Wait()
		token.Acquire()
		token.Release()
		token.Release()
		if n := passed.Load(); n != 3 {
			t.Errorf("%d of 3 passed", n)
		}
	})
}

func BenchmarkTokenYield(b *testing.B) {
	token := comm.NewToken()
	for b.Loop() {
		token.Yield()
	}
}
