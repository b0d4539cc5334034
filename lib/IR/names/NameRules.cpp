// fagen: which names the text of a program can use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NameRules.h"

#include "fagen/IR/TextNames.h"
#include "fagen/Support/CppKeywords.h"
#include "fagen/Support/ReservedWords.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace fagen;
using llvm::StringRef;

bool ir::isIdentifier(StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

std::string ir::whyNoMember(StringRef name) {
  if (!isIdentifier(name))
    return "is not an identifier";
  if (name.starts_with("_") || name.contains("__"))
    return "has a leading or a double underscore, which C++ keeps for itself";
  if (isCppKeyword(name))
    return "is a keyword of C++";
  if (isAmong("restrict ", name)) // its one that C++ has not
    return "is a keyword of C, in which --emit=single declares it";
  return isHeaderMacro(name) ? "is a macro of the headers that CUDA text includes" : "";
}

/// Names at the scope of the namespace fagen::device; scripts/random-programs --names finds what lacks.
static bool isOfDeviceLibrary(StringRef name) {
  static constexpr llvm::StringLiteral kNames =
      "Accumulator AskTogether AttentionParams BoxSwizzle ClassCounts ClockRecords CombinedRow CtaPlace Divisor "
      "ElementRange "
      "Exponent FormedParams HalfSums HeadTile KeyRun KeyTilePlace LaneColumns LaneRows LaneScan LeftOperand "
      "MapElement MappedAttentionParams Mbarriers MergedPair NextTile PackedRows Parts QuadWords ReadApart "
      "ReadTogether Reciprocal RecordPlace RowExponent RowUnit RowValues Rows RunPlace RunsOfLane SeenKeys SeenTiles "
      "Sequences Share SharedTile SightMap SplitPlace SplitRow Stage StageClock StageEvent Swizzle TensorMap "
      "TensorMapDescription ThreadClock TileBits TileOrder TilePlan TileRun TileShare WarpRecord WarpWord "
      "WmmaBlock WmmaOperand abs accumulate add_abt_slices add_sums address_of_lane all_of any any_of arrive "
      "arrive_by_group arrive_by_warp arrive_expecting arrive_in_cluster_by_group arrive_in_cluster_by_warp "
      "ascending_offsets await_turn begin_rows bf16 bit box_swizzle bytes_not_zero bytes_of ceil_div ceil_log2 "
      "chunk_permutation classify_tiles clear cluster_barrier columns_first_corner combine_alone combine_last "
      "combine_parts combine_row combine_splits commit_boxes_by_group convert copy_box copy_boxes "
      "copy_found_rows_async copy_matrix copy_matrix_async copy_next_tile copy_next_tile_async copy_packed_tile "
      "copy_packed_tile_async copy_part copy_share copy_share_of_boxes copy_tile copy_tile_async copy_tile_box "
      "copy_vector copy_vector_async core_bytes distinct draw e4m3 e5m2 element element_of exp2 "
      "exp2_by_polynomial exponent_factor f16 f32 fill finite_max first_key first_keys floor_div floor_log2 "
      "floor_mod for_own_found_vectors for_own_matrix_vectors for_own_packed_vectors for_own_scores "
      "for_own_vectors four_of_quad hand_tile has_one_address head_lse head_rows head_tiles hide_unseen "
      "high_half highest highest_by_warp i32 inverse_sum is_last_split issue_ab issue_ab_of_registers "
      "issue_ab_of_shared issue_abt issue_abt_of_registers issue_abt_slices issue_add_abt issue_add_atb "
      "issue_atb issue_atb_of_shared issue_first_ab judge_tiles kClassifyCtas kClassifyWarps kCombineWarps "
      "kFiniteSum kGroupRows kIsBit kLazyBits kLn2 kLoads kLog2E kLoweredBits kLoweredBitsBf16 kLoweredBitsF16 "
      "kMapMark kMapRank kMostByWarp kMostJudged kOfDifference kOfExponents kPadElements kPartialExtra "
      "kRecordAlignment kRecordSums kRecordWords kRunKeys kSampleEvery kSettledSum kSettledSumBf16 "
      "kSettledSumF16 kSmallMaximum kSplitExtra kStageCount kStageNames kTileBits kTileClasses kTilesSum "
      "kTraceEvents kTracedCtas kUntoldSum kWholeRun k_major_at k_major_operand k_major_reach k_major_step "
      "lane_element lane_max last_tile_first load_as_float load_bits load_element load_operand load_pair load_two "
      "locate_cta locate_key_tile locate_split locate_tile log2 log_heads_in_turn log_runs_in_turn log_sum_exp "
      "longest_tile_first low_half lower_rows lowest lowest_by_warp lse_factor make_divisor map map_along mask "
      "mask_by_runs mask_from mask_range max mbarrier_init merge_pair min mma_ab mma_ab_f16 mma_ab_slice "
      "mma_abt mma_abt_f16 mma_abt_slice mma_add_abt mma_add_atb mma_atb mma_first_ab mma_tile mn_major_at "
      "mn_major_columns mn_major_operand mn_major_reach mn_major_step normalize nth_one of_first_lane ones "
      "operand_bytes outgrows output_ab over_box over_box_by_warp own_source packed_lse_rows packed_rows "
      "packed_split_rows panel_columns panel_row_bytes part_stride pass_turn plan_rows put_tiles record_bytes "
      "reduce_partial_max reduce_partial_sum reduce_total_max reduce_total_sum rescale rescale_lazily "
      "rescale_output rescale_output_lazily rescale_rows rescale_rows_lazily rest_of row_count row_max row_offset "
      "row_sum rows_first_corner scan_lanes scores_abt scores_again see_runs seen_keys seen_of_run seen_tiles "
      "settle_outgrown settle_rows share_seen_keys sight_of sights_of signed_ceil_div signed_floor_div "
      "slice_address slice_columns split_bytes split_columns split_rows sqrt stage_rows store_boxes "
      "store_boxes_by_group store_lse store_matrix store_merged store_merged_split store_pair store_part "
      "store_partial store_rounded store_rows store_split store_values subtract_large_maxima take_keys take_tile "
      "take_turns "
      "tanh terms_outgrow threads_across ticket_of tile_bytes tile_count tile_heads tile_of tile_offset total "
      "trace_bytes transpose_in_quad value_of value_of_lane wait_for wait_for_boxes_by_group wgmma_slice "
      "whole_tiles widen wmma_ab wmma_abt wmma_product wmma_stride words_of_quad ";
  return isAmong(kNames, name);
}

/// What the emitter calls its own things.
static bool isOfText(StringRef name) {
  static constexpr llvm::StringLiteral kNames = "Cta Params Ring SharedStorage cta fagen is_first is_outgrown "
                                                "is_redone ptx tile_at tile_count warp_key warp_row ";
  return isAmong(kNames, name);
}

std::string ir::whyNoName(StringRef name) {
  std::string why = whyNoMember(name);
  if (why.empty() && isOfDeviceLibrary(name))
    why = "is a name of the device library, which the text uses";
  return why.empty() && isOfText(name) ? "is a word that the text has for itself" : why;
}

std::string ir::whyNoVariable(StringRef name) {
  const std::string why = whyNoName(name);
  return why.empty() && isAmong("k q r ", name) ? "stands for registers or the place of an element in the text" : why;
}

std::string ir::whyNoRole(StringRef name) {
  const std::string why = whyNoName(name);
  return why.empty() && isAmong("group params warp ", name) ? "is a word that the text has for itself" : why;
}

std::string ir::whyNoArgument(StringRef name) {
  const std::string why = whyNoMember(name);
  if (!why.empty())
    return why;
  // Types of the argument's members.
  if (isAmong("TensorMap bf16 e4m3 e5m2 f16 ", name))
    return "is a type of the text's";
  return isPythonKeyword(name) ? "is a keyword of Python, in which programs are called by names" : "";
}

std::string ir::whyNoNumber(StringRef name) {
  static constexpr llvm::StringLiteral kOperations = "add ceil_div floor_div max min mod mul sub ";
  if (isAmong(kOperations, name))
    return "is an operation of plans";
  if (isAmong("sms ", name))
    return "stands for the multiprocessors of the device";
  return isCounterParam(name) ? "is the counter of drawn grids" : "";
}
