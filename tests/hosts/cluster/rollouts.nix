# A published version reaches ursula first, then raishan, then all others. Of laptop and mgmt01, only
# one is changed at a time.
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
            laptop = base.hosts.laptop // {
              tags = [ "pair" ];
            };
            mgmt01 = base.hosts.mgmt01 // {
              tags = [ "pair" ];
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
          atOnce = [
            {
              tags = [ "pair" ];
              most = 1;
            }
          ];
          healthy = 20;
          within = 600;
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
  (waves {
    name = "-broken";
    rollout.within = 25;
  } broken news)
  (waves (window "-closed" [ day ]) { } news)
  (waves (window "-open" days) { } { })
]
