# The formats of URLs. A value that satisfies a predicate is also accepted by the programs in Go.
let
  inherit (builtins)
    elemAt
    fromJSON
    isString
    match
    stringLength
    ;
  inherit (import ../types) matches scalar;
  inherit (import ./addresses.nix) isV6;

  # The part of an http or https URL after the host, as net/url and Dex parse it; null for other
  # texts.
  #   "https://wiki.example.org:8443/cb?a=b" → "/cb?a=b"
  # afterHost :: Any -> String | null
  afterHost =
    v:
    let
      part = if isString v && stringLength v <= 1000 then matchURL v else null;
      six = elemAt part 1;
      port = elemAt part 3;
      rest = elemAt part 4;
    in
    if part == null || six != null && !isV6 six || port != null && fromJSON port > 65535 then
      null
    else if rest == null then
      ""
    else
      rest;
  matchURL = match "https?://([A-Za-z0-9._-]+|\\[([0-9A-Fa-f:]+)])(:([1-9][0-9]{0,4}))?([/?]([A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?";

  # RFC 6749, section 3.1.2: compared exactly, without a fragment.
  url = scalar {
    want = "an http or https URL of one host, at most 1000 characters (RFC 3986), without fragment";
    hint = "write for example \"https://wiki.example.org\"";
    example = "https://wiki.example.org";
    ok = v: afterHost v != null;
  };

  # SPIFFE Federation, section 5.
  endpoint = https "https://forge.blue.example:4605/federation/bundle";

  # RFC 8555, section 7.1.1.
  acmeDirectory = https "https://acme-v02.api.letsencrypt.org/directory";

  https =
    example:
    scalar {
      want = "an https URL of one host, at most 1000 characters (RFC 3986), without fragment";
      hint = "write for example \"${example}\"";
      inherit example;
      ok = v: matches "https://.*" v && afterHost v != null;
    };

  # OpenID Connect Discovery 1.0, section 3. The provider serves its pages at the root.
  issuer = scalar {
    want = "an http or https URL of one host and nothing after it";
    hint = "write for example \"https://auth.example.org\"";
    example = "https://auth.example.org";
    ok = v: afterHost v == "";
  };
in
{
  inherit
    acmeDirectory
    afterHost
    endpoint
    issuer
    url
    ;
}
