package loopback

import "testing"

func TestWhatOnlyThisMachineReaches(t *testing.T) {
	for address, want := range map[string]struct{ host, address bool }{
		"localhost":              {true, true},
		"127.0.0.1":              {true, true},
		"127.9.9.9":              {true, true},
		"::1":                    {true, true},
		"[::1]":                  {false, true},
		"::ffff:127.0.0.1":       {true, true},
		"localhost:80":           {false, true},
		"127.0.0.1:80":           {false, true},
		"[::1]:80":               {false, true},
		"":                       {false, false},
		":80":                    {false, false},
		"0.0.0.0":                {false, false},
		"[::]:80":                {false, false},
		"10.0.0.1:80":            {false, false},
		"localhost.":             {false, false},
		"LOCALHOST":              {false, false},
		"localhost.example:80":   {false, false},
		"127.0.0.1.example":      {false, false},
		"2130706433":             {false, false},
		"127.1":                  {false, false},
		"gate.example.localhost": {false, false},
	} {
		if got := IsHost(address); got != want.host {
			t.Errorf("IsHost(%q) = %t", address, got)
		}
		if got := IsAddress(address); got != want.address {
			t.Errorf("IsAddress(%q) = %t", address, got)
		}
	}
}
