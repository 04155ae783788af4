#!/bin/sh
# One search on the hosts that Slurm gives: a process for each task. In a folder that all hosts see:
#
#   sbatch --nodes=3 --ntasks-per-node=1 slurm.sh explore model.mcrl2
#   sbatch --nodes=3 --ntasks-per-node=8 slurm.sh check model.mcrl2 formula.mcf --checkpoint kept
#
# With MPI's launchers, after the list and the secret are written:
#
#   mpirun -n 3 sh -c 'exec mu-check explore model.mcrl2 --cluster hosts --secret secret --process "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'
#SBATCH --job-name=mu-check
set -eu
umask 077
run=mu-check.${SLURM_JOB_ID:?not started by Slurm}
# The tasks of a host stand together in the order of their numbers. Jobs that share a host listen at ports of their own.
scontrol show hostnames "$SLURM_JOB_NODELIST" |
  awk -v each="${SLURM_NTASKS_PER_NODE:-1}" -v port="$((10000 + SLURM_JOB_ID * 128 % 20000))" \
    '{ for (i = 0; i < each; i++) print $0 ":" port++ }' > "$run.hosts"
head -c 32 /dev/urandom | base64 > "$run.secret"
export run
# A false formula is an exit code other than 0 and no reason to kill; one task that never began is a reason not to wait for the others.
srun --kill-on-bad-exit=0 --wait=120 sh -c 'exec mu-check "$@" --cluster "$run.hosts" --secret "$run.secret" --process "$SLURM_PROCID"' mu-check "$@"
