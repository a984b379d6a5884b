# The other way round.
{ flake, membership, ... }: {
  imports = [ (membership "blue") ];
  services.florete_blue = { cluster = flake; hostName = "ursula"; };
}
