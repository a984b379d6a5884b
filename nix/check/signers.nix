# The number of different keys in trust.signingKeys: a key that is listed with two names is one.
clean:
let
  inherit (builtins)
    elemAt
    filter
    length
    match
    ;
  inherit (import ../lib) distinct isInvalid;
in
length (
  distinct (
    map (k: elemAt (match "[^:]*:(.*)" k) 0) (filter (k: !isInvalid k) clean.trust.signingKeys)
  )
)
