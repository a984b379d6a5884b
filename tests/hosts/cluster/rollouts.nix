# A published version reaches ursula first, then raishan, then all others, within seconds.
serial: base: polled: news:
let
  waves = more: hosts: change: {
    name = "waves${more.name or ""}";
    change = polled (
      {
        hosts =
          base.hosts
          // {
            ursula = base.hosts.ursula // {
              tags = [ "canary" ];
            };
            raishan = base.hosts.raishan // {
              tags = [ "early" ];
              group = "lair";
            };
          }
          // hosts;
        hostGroups.lair = { };
        rollout = {
          waves = [
            { tags = [ "canary" ]; }
            { tags = [ "early" ]; }
            { rest = true; }
          ];
          healthy = 20;
          within = 60;
        }
        // more.rollout or { };
      }
      // change
    );
  };
  # Ursula would listen on an address that it does not have.
  broken.ursula = base.hosts.ursula // {
    tags = [ "canary" ];
    bind = "198.51.100.9";
  };
  days = [
    "sun"
    "mon"
    "tue"
    "wed"
    "thu"
    "fri"
    "sat"
  ];
  # The weekday three days from now.
  day = builtins.elemAt days (
    let
      n = serial / 86400 + 4 + 3;
    in
    n - n / 7 * 7
  );
  window = name: days: {
    inherit name;
    rollout.maintenance.lair = {
      inherit days;
      start = "00:00";
      minutes = 1440;
    };
  };
in
[
  (waves { } { } { })
  (waves { name = "-news"; } { } news)
  (waves { name = "-broken"; } broken news)
  (waves { name = "-paused"; } { } { })
  (waves (window "-closed" [ day ]) { } news)
  (waves (window "-open" days) { } { })
]
