{ further, membership, ... }: {
  imports = [ (membership "green") ];
  services.florete_green = { cluster = further { }; hostName = "ursula"; };
}
