# The record of the rollout, which says how published versions reach the hosts.
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
of "How a published version reaches hosts. By default it reaches all at once." (
  record "a rollout" {
    waves = of "Waves of hosts that are offered a version one after the other. The last is `{ rest = true; }`." (
      listOf (
        record "a wave" {
          tags = of "Hosts with all of these tags." tags;
          percent =
            default
              "Percentage of all hosts, approximately: a hash of its name decides whether a host is included. A higher percentage includes the hosts of a lower one. A new host moves no other host between waves."
              null
              (between 1 99 "a percentage");
          rest = of "All other hosts." (scalar {
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
    # Hosts check every ten seconds whether there is something to report.
    healthy =
      default "Seconds for which all hosts reached so far must be healthy before the next wave." 600
        (between 20 31536000 "seconds");
    within =
      default
        "Seconds within which hosts must become healthy. Otherwise the provider goes back to the former version. More than `providers.config.interval`."
        3600
        seconds;
    atOnce =
      of
        "Disruption budgets. Each limits how many hosts with certain tags are changed at the same time, by rollouts and by `florctl deploy`. With budgets and without `waves`, a rollout has one wave with all hosts."
        (
          listOf (
            record "a disruption budget" {
              tags = of "The budget applies to the hosts that have all of these tags." tags;
              most =
                required
                  "Number of these hosts that may be changed at the same time. A host that is not healthy counts as one that is being changed."
                  "1"
                  (between 1 10000 "hosts");
            }
          )
        );
    maintenance =
      of "Maintenance windows, by group of hosts, in which these hosts may be offered a version. By default at any time."
        (
          attrsOf (
            record "a maintenance window" {
              days = default "Days on which the window begins." days (listOf (enum days));
              start = required "Time at which the window begins, in UTC." "\"02:30\"" timeOfDay;
              minutes = default "Length of the window, in minutes." 120 (between 1 1440 "minutes");
            }
          )
        );
  }
)
