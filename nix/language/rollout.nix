# The record of how what is published reaches hosts.
let
  inherit (builtins) isBool;
  inherit (import ./types)
    attrsOf
    between
    default
    enum
    listOf
    of
    record
    required
    ;
  inherit (import ./formats) seconds tags timeOfDay;
  inherit (import ./types/scalar.nix) scalar;
  inherit (import ../lib) invalid;

  days = [
    "mon"
    "tue"
    "wed"
    "thu"
    "fri"
    "sat"
    "sun"
  ];
in
of "how what is published reaches hosts; to all at once unless written" (
  record "a rollout" {
    waves = of "hosts that are offered a version one wave after the other; the last is `{ rest = true; }`" (
      listOf (
        record "a wave" {
          tags = of "hosts with all of these" tags;
          percent =
            default "of all hosts, with those of the waves before: the same ones whatever hosts come" null
              (between 1 99 "a percentage");
          rest = of "all other hosts" (scalar {
            want = "true or false";
            json.type = "boolean";
            hint = "write it without quotes";
            zero = false;
            invalid = invalid.string;
            ok = isBool;
          });
        }
      )
    );
    # They look every ten seconds whether there is something to report.
    healthy =
      default "seconds that all hosts reached must be healthy before the next wave" 600
        (between 20 31536000 "seconds");
    within =
      default "seconds in which hosts must become so, else it goes back; more than `providers.config.interval`"
        3600
        seconds;
    maintenance =
      of "by group of hosts, when these may be offered a version; at any time unless written"
        (
          attrsOf (
            record "a maintenance window" {
              days = default "on which it begins" days (listOf (enum days));
              start = required "when, in UTC" "\"02:30\"" timeOfDay;
              minutes = default "how long it is" 120 (between 1 1440 "minutes");
            }
          )
        );
  }
)
