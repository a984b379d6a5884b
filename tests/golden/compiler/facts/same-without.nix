{ base, ... }: base
