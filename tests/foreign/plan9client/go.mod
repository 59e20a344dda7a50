module plan9client

go 1.19

require 9fans.net/go v0.0.7
